// What restarts and health checks ask for and show in the same way.
import { Type } from 'typebox'

/** A Go duration that may be left out. */
export const DurationText = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 64, description }))

/** @param ms epoch `ms` */
export function timeView (ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}
