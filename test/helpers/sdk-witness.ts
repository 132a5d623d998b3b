// The official SDK with somebody who looks on: which of its methods were called, and whether each answer fits its type.
import type Hypeman from '@onkernel/hypeman'
import { Stream } from '@onkernel/hypeman/streaming'
import { APIResource } from '@onkernel/hypeman/resource'
import type { SdkModels } from './sdk-models.ts'

export interface Witness {
  /** the same SDK; a call rejects when its answer contradicts its type */
  readonly sdk: Hypeman
  /** methods that have had an answer */
  readonly answered: ReadonlySet<string>
  /** methods that have been refused */
  readonly refused: ReadonlySet<string>
}

export function watch (client: Hypeman, models: SdkModels): Witness {
  const answered = new Set<string>()
  const refused = new Set<string>()
  const check = (method: string, answer: unknown): void => {
    const problems = models.problems(method, answer)
    if (problems.length > 0) throw new Error(`${method} does not fit its type: ${problems.join('; ')}`)
    answered.add(method)
  }
  async function * checked (method: string, items: Stream<unknown>): AsyncGenerator {
    for await (const item of items) {
      check(method, item)
      yield item
    }
  }
  const call = async (method: string, work: () => unknown): Promise<unknown> => {
    let answer: unknown
    try {
      answer = await work()
    } catch (error) {
      refused.add(method)
      throw error
    }
    if (answer instanceof Stream) return checked(method, answer)
    check(method, answer)
    return answer
  }
  const wrap = <T extends object>(target: T, path: string): T => new Proxy(target, {
    get (_target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (typeof key !== 'string') return value
      const name = path === '' ? key : `${path}.${key}`
      if (value instanceof APIResource) return wrap(value, name)
      if (typeof value !== 'function' || !models.methods.includes(name)) return value
      return async (...given: unknown[]) => await call(name, () => Reflect.apply(value, target, given))
    }
  })
  return { sdk: wrap(client, ''), answered, refused }
}
