"""What explorers of several parts share: a button that asks real devices, and measuring here."""
