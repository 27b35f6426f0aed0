"""`mentee demo`: the proof, unattended. A scripted person talks until the product has learnt, and measures whether it did."""
