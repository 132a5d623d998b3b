// A gRPC server with every kind of call, made with the library that services use.
import { Metadata, Server, ServerCredentials, status, type sendUnaryData, type ServerDuplexStream, type ServerReadableStream, type ServerUnaryCall, type ServerWritableStream } from '@grpc/grpc-js'
import { SERVICE } from '../guest/grpc-service.ts'
import { machineMs, type Seen } from './contract.ts'

/** Serves at `address:443`. */
export async function startGrpc (address: string, certificate: { readonly cert: string, readonly key: string }, note: (seen: Seen) => void): Promise<void> {
  const server = new Server()
  const noted = (path: string, metadata: Metadata): void => note({
    origin: 'grpc', secure: true, protocol: '2.0', method: 'POST', url: path, atMs: machineMs(), bodyBytes: 0, bodyHash: '', body: '',
    headers: Object.keys(metadata.getMap()).flatMap((name) => metadata.get(name).flatMap((value) => [name, String(value)]))
  })
  server.addService(SERVICE, {
    single (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) {
      noted('single', call.metadata)
      const trailer = new Metadata()
      trailer.set('x-trailer', 'at the end')
      const first = new Metadata()
      first.set('x-first', 'at the beginning')
      call.sendMetadata(first)
      done(null, call.request, trailer)
    },
    many (call: ServerWritableStream<Buffer, Buffer>) {
      noted('many', call.metadata)
      for (let index = 0; index < call.request.length; index++) call.write(call.request.subarray(0, index + 1))
      call.end()
    },
    collect (call: ServerReadableStream<Buffer, Buffer>, done: sendUnaryData<Buffer>) {
      noted('collect', call.metadata)
      const parts: Buffer[] = []
      call.on('data', (part: Buffer) => parts.push(part))
      call.on('end', () => done(null, Buffer.concat(parts)))
    },
    talk (call: ServerDuplexStream<Buffer, Buffer>) {
      noted('talk', call.metadata)
      call.on('data', (part: Buffer) => call.write(part))
      call.on('end', () => call.end())
    },
    fail (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) {
      noted('fail', call.metadata)
      const metadata = new Metadata()
      metadata.set('x-why', 'tested')
      done({ code: status.FAILED_PRECONDITION, details: 'not now: 50 % of it', metadata })
    },
    wait () {
      // never answers: the caller's deadline ends it
    }
  })
  await new Promise<void>((resolve, reject) => {
    const credentials = ServerCredentials.createSsl(null, [{ private_key: Buffer.from(certificate.key), cert_chain: Buffer.from(certificate.cert) }])
    server.bindAsync(`${address}:443`, credentials, (error) => error === null ? resolve() : reject(error))
  })
}
