// A logger that is created when something is logged. Fastify makes one per request, most requests log nothing, and making a
// child of a redacting pino logger costs more than all else that the server adds to a request.
import type { FastifyBaseLogger } from 'fastify'
import type { Bindings, ChildLoggerOptions, LevelWithSilentOrString, LogFn } from 'pino'

type ChildOptions = ChildLoggerOptions<string>

class LazyLog implements FastifyBaseLogger {
  readonly #make: () => FastifyBaseLogger
  #made: FastifyBaseLogger | undefined

  constructor (make: () => FastifyBaseLogger) { this.#make = make }

  get level (): LevelWithSilentOrString { return this.#log.level }
  set level (level: LevelWithSilentOrString) { this.#log.level = level }

  get fatal (): LogFn { return this.#log.fatal.bind(this.#log) }
  get error (): LogFn { return this.#log.error.bind(this.#log) }
  get warn (): LogFn { return this.#log.warn.bind(this.#log) }
  get info (): LogFn { return this.#log.info.bind(this.#log) }
  get debug (): LogFn { return this.#log.debug.bind(this.#log) }
  get trace (): LogFn { return this.#log.trace.bind(this.#log) }
  get silent (): LogFn { return this.#log.silent.bind(this.#log) }

  child (bindings: Bindings, options?: ChildOptions): FastifyBaseLogger {
    return new LazyLog(() => this.#log.child(bindings, options))
  }

  get #log (): FastifyBaseLogger { return (this.#made ??= this.#make()) }
}

/** `log`, with child loggers that cost nothing until they are used. */
export function lazyChildren (log: FastifyBaseLogger): FastifyBaseLogger {
  return new LazyLog(() => log)
}
