// What a server sends as JSON in the middle of a stream or a WebSocket.
import { Failure } from '../failure.ts'

/** @throws Failure when it is no JSON */
export function parseJson<T> (text: string): T {
  try {
    return JSON.parse(text) as T
  } catch {
    throw new Failure('the server has sent a message that is no JSON')
  }
}
