/** A VM that was kept cannot go on. Whoever gets this starts another one on the image. */
export class KeptVmUnfit extends Error {
  override readonly name = 'KeptVmUnfit'
}
