// Answers whose code the API's document does not list, for tests to hear of. Alone in this file, so that whoever listens loads nothing else.
import { channel } from 'node:diagnostics_channel'

export interface UndocumentedError { readonly method: string, readonly url: string, readonly status: number, readonly code: string }

export const undocumentedErrors = channel('berth:undocumented-error')
