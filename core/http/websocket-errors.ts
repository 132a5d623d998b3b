// Handles errors of WebSockets: a fault of the client is logged at debug only, a fault of the server as an error.
import type { WebsocketPluginOptions } from '@fastify/websocket'

type ErrorHandler = NonNullable<WebsocketPluginOptions['errorHandler']>

/** `errorHandler` of the WebSocket plugin. */
export const handleWebsocketError: ErrorHandler = (error, socket, request) => {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const theirs = code.startsWith('WS_ERR_') || code === 'ECONNRESET' || code === 'EPIPE'
  if (theirs) request.log.debug({ err: error }, 'WebSocket broken by the client')
  else request.log.error({ err: error, path: request.url.split('?')[0] }, 'WebSocket handler failed')
  socket.terminate()
}
