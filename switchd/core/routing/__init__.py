"""Switches that route for themselves: BGP sessions with neighbours, BFD beside them, routes, and the table they fill.

A routing core (`router.Router`) is to a switch what a routing daemon is to a real one: it lives in fabric time, hears
the packets that neighbours send to the switch itself, and says which packets to send, and what to write into the table
of `switchd.core.forwarding`. It knows nothing of queues, and the forwarding knows nothing of it.

- `stream`: one end of a TCP connection. `session`: BGP's states over it. `liveness`: BFD.
- `rib`: routes, the best one, groups of equal ones. `dampening`: routes that flap. `outbound`: what a neighbour is
  told. `work`: what the processor has to do. `writer`: the way into the table. `timetable`: what is due when.
"""
