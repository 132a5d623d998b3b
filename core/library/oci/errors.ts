// Errors of image names that a caller wrote.
import { defineError } from '../../errors/define.ts'

/** The image reference is invalid. @param field where it was written */
export const InvalidName = defineError('invalid_name', 'invalid', (written: string, why: string, field: string = 'name') =>
  `${field}: "${written}" is not an image reference: ${why}`)
