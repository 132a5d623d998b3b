/** Whether a request must not be forwarded, by the value of its `Max-Forwards` (RFC 9110, 7.6.2); what is no number of further steps allows none. */
export function endsHere (value: string): boolean {
  const steps = value.trim()
  return !/^\d+$/.test(steps) || Number(steps) === 0
}
