// The reads that are measured.
import type { Stored } from './stored-server.ts'

export const READS: readonly { readonly name: string, readonly pathOf: (stored: Stored) => string }[] = [
  { name: 'GET /instances/{id}', pathOf: ({ id }) => `/instances/${id}` },
  { name: 'GET /instances', pathOf: () => '/instances' }
]
