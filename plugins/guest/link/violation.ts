// What is thrown inside the link when the guest breaks the protocol; it ends the link and never leaves this folder.

/** The message completes the sentence "the guest …". */
export class ProtocolViolation extends Error {
  override readonly name = 'ProtocolViolation'
}
