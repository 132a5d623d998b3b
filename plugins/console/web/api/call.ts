// Calls the API with the session's cookie.
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: string
  readonly requestId: string | null

  constructor (status: number, code: string, message: string, requestId: string | null) {
    super(message)
    this.status = status
    this.code = code
    this.requestId = requestId
  }
}

/** Whether the API answered that there is no such thing, or no such route. */
export function isNotFound (fault: unknown): boolean {
  return fault instanceof ApiError && fault.status === 404
}

let refused = (): void => undefined

/** Sets the listener for requests that are refused for want of a session. */
export function whenRefused (listener: () => void): void { refused = listener }

/** The answer's JSON. Rejects with an ApiError, also when there is no answer (status 0). */
export async function call<T> (method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const answer = await send(method, path, body, signal)
  const text = await answer.text()
  if (answer.ok) return (text === '' ? undefined : JSON.parse(text)) as T
  if (answer.status === 401 && path !== '/console/session') refused()
  throw failure(answer, text)
}

async function send (method: string, path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const isRaw = body instanceof FormData || body instanceof Blob
  try {
    return await fetch(path, {
      method,
      headers: { 'x-berth-console': '1', ...body === undefined || isRaw ? {} : { 'content-type': 'application/json' } },
      ...body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) },
      ...signal === undefined ? {} : { signal }
    })
  } catch (error) {
    if (signal?.aborted === true) throw error
    throw new ApiError(0, 'no_answer', 'The server does not answer.', null)
  }
}

function failure (answer: Response, text: string): ApiError {
  const id = answer.headers.get('x-request-id')
  try {
    const { code, message } = JSON.parse(text) as { code: string, message: string }
    return new ApiError(answer.status, code, message, id)
  } catch {
    return new ApiError(answer.status, 'unknown', `The server answered ${answer.status}.`, id)
  }
}

/** A path whose parts are encoded. */
export function path (strings: TemplateStringsArray, ...values: readonly string[]): string {
  return strings.reduce((text, part, index) => text + part + (index < values.length ? encodeURIComponent(values[index] ?? '') : ''), '')
}

/** The text of a caught value, for people. */
export function messageOf (error: unknown): string {
  if (error instanceof ApiError) return error.requestId !== null && error.status >= 500 ? `${error.message} (request ${error.requestId}, see the server's log)` : error.message
  return error instanceof Error ? error.message : String(error)
}
