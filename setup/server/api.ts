// A small client of the REST API for the programs in setup/ and bench/: JSON calls, and lines of an event stream.

/** The server's error answer. */
export class ApiError extends Error {
  override readonly name = 'ApiError'

  readonly status: number

  constructor (status: number, message: string) {
    super(message)
    this.status = status
  }
}

export interface Api {
  /** Sends a request and returns the parsed answer; an error answer becomes an error with its message. */
  call (method: string, path: string, body?: unknown): Promise<unknown>
  /** The lines of a server-sent event stream whose data are JSON strings. */
  lines (path: string, signal?: AbortSignal): AsyncGenerator<string>
}

/** A client of the server at `url`. */
export function createApi (url: string, key: string): Api {
  const headers = { authorization: `Bearer ${key}` }
  return {
    call: async (method, path, body) => {
      const answer = await fetch(`${url}${path}`, body === undefined
        ? { method, headers }
        : { method, headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) })
      const text = await answer.text()
      if (!answer.ok) throw new ApiError(answer.status, `${method} ${path}: ${answer.status} ${messageOf(text)}`)
      return text === '' ? undefined : JSON.parse(text)
    },
    lines: async function * (path, signal) {
      const answer = await fetch(`${url}${path}`, { headers: { ...headers, accept: 'text/event-stream' }, signal: signal ?? null })
      if (!answer.ok || answer.body === null) throw new Error(`GET ${path}: ${answer.status} ${messageOf(await answer.text())}`)
      let rest = ''
      for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
        const parts = (rest + chunk).split('\n')
        rest = parts.pop() ?? ''
        for (const line of parts) if (line.startsWith('data:')) yield String(JSON.parse(line.slice(5)))
      }
    }
  }
}

function messageOf (text: string): string {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null && 'code' in body && 'message' in body) return `${String(body.code)}: ${String(body.message)}`
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  return text
}
