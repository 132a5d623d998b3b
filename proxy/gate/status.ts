// Which statuses an answer can have, and which of them have no body.

/** Whether it is the status of a final answer (RFC 9110, 15). Readers disagree about other numbers, and HTTP/2 in Node takes none of them. */
export function isFinalStatus (status: number): boolean {
  return Number.isInteger(status) && status >= 200 && status <= 599
}

/** Whether an answer has no body, whatever its header says (RFC 9110, 6.4.1 and 15.3.6). */
export function hasNoBody (method: string, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 205 || status === 304
}
