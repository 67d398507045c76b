"""Experiments in virtual time on the daemons' own cores, and the tables of their results.

`trial` runs one fabric with its flows and faults and reports what came of it; `study` says what is compared and which
order is expected; `catalog` has the studies themselves, `golden` the table that guards against unnoticed change;
`results` keeps everything as text. Nothing here is needed to run a fabric.
"""
