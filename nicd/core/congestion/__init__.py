"""How much may be in flight towards a destination: NSCC and other windows, of whichever transport sprays."""
