/** A kept VM cannot go on. Whoever catches this starts another VM on the image. */
export class KeptVmUnfit extends Error {
  override readonly name = 'KeptVmUnfit'
}
