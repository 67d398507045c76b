"""Programs of the emulated hosts: what an application does, in fabric time, without a process of its own.

A program runs beside the core of its NIC, posts writes and learns of completions at exact fabric instants. So the same
run gives the same trace on real UDP and in virtual time. Applications with processes of their own use `nicd.verbs`.
"""
