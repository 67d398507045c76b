"""The second series of cases: fabrics of every system, with RoCE's transport and switches that pause, under watch."""
