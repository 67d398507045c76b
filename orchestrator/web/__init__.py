"""The live map: a page on loopback that shows a running fabric and lets one break and heal it."""
