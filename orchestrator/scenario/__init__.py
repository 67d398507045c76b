"""The scenario language: a fabric, a workload, a timetable of faults, and what must hold."""
