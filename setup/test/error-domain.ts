// Stands for the package async-hook-domain in the bundle of tap: finds the test that an error belongs to which nobody caught. The package notes every promise of the process, and the
// collector must tell it of the end of each; tests with a whole server in their process spend a quarter of their processor time on that. Here Node itself passes the test on.
import { AsyncLocalStorage } from 'node:async_hooks'

type Kind = 'uncaughtException' | 'unhandledRejection'

const current = new AsyncLocalStorage<Domain>()
let newest: Domain | undefined
let isListening = false

/** What is begun in the asynchronous scope that made it belongs to it, except what belongs to a domain made in there. */
export class Domain {
  readonly onerror: (error: unknown, kind: Kind) => void
  readonly #parent = current.getStore()
  #isOver = false

  constructor (onerror: (error: unknown, kind: Kind) => void) {
    this.onerror = onerror
    current.enterWith(this)
    newest = this
    listen()
  }

  /** What belonged to it belongs to the one around it. */
  destroy (): void {
    this.#isOver = true
  }

  /** The innermost that is not over. */
  get open (): Domain | undefined {
    return this.#isOver ? this.#parent?.open : this
  }
}

function listen (): void {
  if (isListening) return
  isListening = true
  process.on('uncaughtExceptionMonitor', (error, origin) => {
    if (process.hasUncaughtExceptionCaptureCallback() || process.listenerCount('uncaughtException') > 0) return
    // Once: without it the process would end, although the test has heard of the error.
    if (tell(error, origin)) process.setUncaughtExceptionCaptureCallback(() => process.setUncaughtExceptionCaptureCallback(null))
  })
  process.on('unhandledRejection', (reason) => {
    // Then it is for the test's own listener.
    if (process.listenerCount('unhandledRejection') > 1) return
    if (!tell(reason, 'unhandledRejection')) throw reason
  })
}

/** Whether a test took the error. */
function tell (error: unknown, kind: Kind): boolean {
  // Where Node has lost the scope, it is most likely the test that began last.
  const domain = (current.getStore() ?? newest)?.open
  domain?.onerror(error, kind)
  return domain !== undefined
}
