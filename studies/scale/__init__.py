"""At what scale MRC becomes indispensable: measured recoveries, a formula, and its check against simulation.

`recovery` measures what each system's job loses to one failure, `model` has the formula, `validation` simulates jobs
under random failures beside it, `page` writes docs/SCALE.md."""
