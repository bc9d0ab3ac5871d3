//! Floor 0: what threads share: the mailbox and the gate, model-checked.
