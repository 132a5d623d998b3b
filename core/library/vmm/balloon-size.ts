// Memory that a VMM says its guest has. A guest may control the VMM, and what is given back to the host is counted by it. Pure.

/** Whether it is an amount that a guest with a balloon can have. @param wholeBytes what it has without the balloon */
export function isBalloonSize (said: unknown, wholeBytes: number): said is number {
  return typeof said === 'number' && Number.isSafeInteger(said) && said >= 0 && said <= wholeBytes
}
