"""freqsgd together with what people run it under."""
