// What is wrong with the name of an image that a caller wrote.
import { defineError } from '../../errors/define.ts'

/** The image reference cannot be read. @param field where it was written */
export const InvalidName = defineError('invalid_name', 'invalid', (written: string, why: string, field: string = 'name') =>
  `${field}: "${written}" is not an image reference: ${why}`)
