// Limits the number of values in JSON from outside: reporting what a schema finds wrong with a value costs more than sending it.
import { InvalidRequest } from '../errors/common.ts'

/** values in objects and lists at all depths: enough for two full lists of arguments, and as much again for everything else */
const MAX_VALUES = 20_000
const MAX_DEPTH = 32

/** @param what is parsed, as messages name it. @throws invalid_request that names the limit that it exceeds */
export function checkJsonSize (body: unknown, what = 'the request body'): void {
  const open: { readonly value: object, readonly depth: number }[] = isNested(body) ? [{ value: body, depth: 1 }] : []
  let count = 0
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.depth > MAX_DEPTH) throw InvalidRequest(`${what} is nested more than ${MAX_DEPTH} levels deep`)
    for (const value of Object.values(next.value)) {
      if (++count > MAX_VALUES) throw InvalidRequest(`${what} has more than ${MAX_VALUES} fields and items`)
      if (isNested(value)) open.push({ value, depth: next.depth + 1 })
    }
  }
}

function isNested (value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
