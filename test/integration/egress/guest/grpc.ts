// Runs in a guest: every kind of gRPC call, with the library that programs use. Prints what came of it as JSON.
import { Client, credentials, Metadata, type ClientReadableStream, type ServiceError } from '@grpc/grpc-js'
import { once } from 'node:events'
import { SERVICE } from './grpc-service.ts'

const [target = '', mock = ''] = process.argv.slice(2)
const client = new Client(target, credentials.createSsl())
const big = Buffer.alloc(1_000_000, 'payload ')
const found: Record<string, unknown> = {}

/** The mock, where a program would put its key. */
function metadata (): Metadata {
  const made = new Metadata()
  made.set('authorization', `Bearer ${mock}`)
  made.set('x-of-the-guest', 'kept')
  return made
}

async function single (): Promise<void> {
  const { path, requestSerialize, responseDeserialize } = SERVICE.single
  const answer = await new Promise<Buffer | undefined>((resolve, reject) => {
    const call = client.makeUnaryRequest(path, requestSerialize, responseDeserialize, big, metadata(), (error, value) => error === null ? resolve(value) : reject(error))
    call.on('metadata', (first: Metadata) => { found['first'] = first.get('x-first') })
    call.on('status', (ending) => {
      found['status'] = ending.code
      found['trailer'] = ending.metadata.get('x-trailer')
    })
  })
  found['single'] = answer?.equals(big)
}

async function streams (): Promise<void> {
  const many = client.makeServerStreamRequest(SERVICE.many.path, SERVICE.many.requestSerialize, SERVICE.many.responseDeserialize, Buffer.from('12345'), metadata())
  found['many'] = (await all(many)).map(String)
  found['collect'] = await new Promise((resolve, reject) => {
    const call = client.makeClientStreamRequest(SERVICE.collect.path, SERVICE.collect.requestSerialize, SERVICE.collect.responseDeserialize, metadata(),
      (error: ServiceError | null, value?: Buffer) => error === null ? resolve(String(value)) : reject(error))
    for (const part of ['a', 'b', 'c']) call.write(Buffer.from(part))
    call.end()
  })
  const talk = client.makeBidiStreamRequest(SERVICE.talk.path, SERVICE.talk.requestSerialize, SERVICE.talk.responseDeserialize, metadata())
  const heard: string[] = []
  for (const word of ['one', 'two', 'three']) {
    talk.write(Buffer.from(word))
    // Each is answered before the next is said: both directions flow at once.
    heard.push(String((await once(talk, 'data') as [Buffer])[0]))
  }
  talk.end()
  await all(talk)
  found['talk'] = heard
}

async function failures (): Promise<void> {
  const failed = await call(SERVICE.fail, {})
  found['fail'] = [failed.code, failed.details, failed.metadata.get('x-why')]
  found['deadline'] = (await call(SERVICE.wait, { deadline: Date.now() + 1000 })).code
}

async function call ({ path, requestSerialize, responseDeserialize }: typeof SERVICE.fail, options: { readonly deadline?: number }): Promise<ServiceError> {
  return await new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, Buffer.from('x'), metadata(), options, (error) => error === null ? reject(new Error('it succeeded')) : resolve(error))
  })
}

async function all (stream: ClientReadableStream<Buffer>): Promise<Buffer[]> {
  const parts: Buffer[] = []
  for await (const part of stream) parts.push(part)
  return parts
}

await single()
await streams()
await failures()
client.close()
console.log(JSON.stringify(found))
