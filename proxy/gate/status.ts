// Which status an answer can have, and what follows from it for its body.

/** Whether it is the status of a final answer (RFC 9110, 15). What is beyond is read in as many ways as there are readers, and HTTP/2 in Node takes none of it. */
export function isFinalStatus (status: number): boolean {
  return Number.isInteger(status) && status >= 200 && status <= 599
}

/** Whether an answer has no body, whatever its header says (RFC 9110, 6.4.1 and 15.3.6). */
export function hasNoBody (method: string, status: number): boolean {
  return method === 'HEAD' || status === 204 || status === 205 || status === 304
}
