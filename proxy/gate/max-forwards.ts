/** Whether the value of `Max-Forwards` forbids to forward the request (RFC 9110, 7.6.2); an invalid number forbids it, too. */
export function endsHere (value: string): boolean {
  const steps = value.trim()
  return !/^\d+$/.test(steps) || Number(steps) === 0
}
