"""The live map: a page on loopback that shows a running fabric and lets its viewer break and heal it."""
