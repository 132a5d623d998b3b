// Reads the JSON messages of a WebSocket by their schema, with the validator and the sentences of request bodies.
import type { Static, TSchema } from 'typebox'
import { InvalidRequest } from '../errors/common.ts'
import { checkJsonSize } from './json-size.ts'
import { describeFaults, validatorOptions } from './validation.ts'
import { buildValidator } from './validators.ts'

// Up to the first fault: nothing limits how many messages come, and a list of all that is wrong with one can cost more than its sender paid for it.
const compile = buildValidator({}, { customOptions: { ...validatorOptions, keywords: [...validatorOptions.keywords], allErrors: false } })

/** A function that reads a message; it throws InvalidRequest that names the field. */
export function messageReader<S extends TSchema> (schema: S): (text: string) => Static<S> {
  const isValid = compile({ schema })
  return (text) => {
    const value = parse(text)
    checkJsonSize(value, 'the message')
    if (isValid(value) === true) return value as Static<S>
    throw InvalidRequest(describeFaults(isValid.errors ?? [], 'message').message)
  }
}

function parse (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw InvalidRequest.from(error, 'the message must be JSON')
  }
}
