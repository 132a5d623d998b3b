// Buffers that wait: one that is a small part of a larger chunk keeps all of that alive, however few bytes the limits count.

/** The piece, or a copy when most of the memory that it keeps alive is not its own: a socket gives 64 KiB at a time, whose rest may be read long before. */
export function ownMemory (piece: Buffer): Buffer {
  if (piece.length * 2 >= piece.buffer.byteLength) return piece
  // Not of the pool that small buffers share: a slice of that would keep its neighbours.
  const copy = Buffer.allocUnsafeSlow(piece.length)
  piece.copy(copy)
  return copy
}
