/** What an origin sent is no answer, or could be read in two ways. The connection or stream that it came over is not used again. */
export class BadAnswer extends Error {
  override readonly name = 'BadAnswer'
}
