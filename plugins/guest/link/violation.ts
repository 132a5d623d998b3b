// The error inside the link for a guest that breaks the protocol; it ends the link and never leaves this folder.

/** The message completes the sentence "the guest …". */
export class ProtocolViolation extends Error {
  override readonly name = 'ProtocolViolation'
}
