/** An origin's answer is invalid or ambiguous. The connection or stream that it came over is not used again. */
export class BadAnswer extends Error {
  override readonly name = 'BadAnswer'
}
