// The other side of the API benchmark: a bare Fastify server whose routes serialise the same objects, held in memory, through the same schema.
// Run as a process of its own: `node bare.js OBJECTS.json`; prints its port.
import { readFile } from 'node:fs/promises'
import Fastify from 'fastify'
import type { Static } from 'typebox'
import { InstanceList, InstanceView } from '../../plugins/instances/api/schemas.ts'

type Instance = Static<typeof InstanceView>

const file = process.argv[2]
if (file === undefined) throw new Error('usage: bare.js OBJECTS.json')
const instances: Instance[] = JSON.parse(await readFile(file, 'utf8'))
const byId = new Map(instances.map(instance => [instance.id, instance]))
const server = Fastify()

server.get<{ Params: { id: string } }>('/instances/:id', { schema: { response: { 200: InstanceView } } }, async (request) => byId.get(request.params.id))
server.get('/instances', { schema: { response: { 200: InstanceList } } }, async () => instances)

const address = await server.listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`${new URL(address).port}\n`)
