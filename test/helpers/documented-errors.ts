// Loaded before each test file: an error answer of a server of this process whose code the API's document does not name makes the file fail.
import { undocumentedErrors, type UndocumentedError } from '../../core/http/undocumented-errors.ts'

const seen = new Set<string>()

undocumentedErrors.subscribe((message) => {
  const { method, url, status, code } = message as UndocumentedError
  const text = `${method} ${url} answered ${status} ${code}, which its document does not name: see errors and passesErrors of the route's configuration`
  if (seen.has(text)) return
  seen.add(text)
  process.stderr.write(`${text}\n`)
})

process.on('exit', () => { if (seen.size > 0) process.exitCode = 1 })

/** Those since the last call, for a process with several files; they no longer make the process fail. */
export function takeUndocumentedErrors (): string[] {
  const taken = [...seen]
  seen.clear()
  return taken
}
