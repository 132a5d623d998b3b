// Of the headers of an answer, those that are given again with it.
import type { FastifyReply } from 'fastify'

export const KEPT_HEADERS = ['content-type', 'location', 'link', 'retry-after'] as const

export function keptHeaders (reply: FastifyReply, names: readonly string[] = KEPT_HEADERS): Readonly<Record<string, string>> {
  return Object.fromEntries(names.flatMap((name) => {
    const value = reply.getHeader(name)
    return value === undefined ? [] : [[name, String(value)] as const]
  }))
}
