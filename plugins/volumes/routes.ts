// The HTTP side of volumes: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { answerPage } from '../../core/http/list.ts'
import { CreateVolume, FromArchiveQuery, ListVolumesQuery, VolumeList, VolumeRef, VolumeView } from './schemas.ts'
import type { Volumes, WantedVolume } from './service.ts'
import { volumeView } from './view.ts'
import { ArchiveInvalid, ArchiveTooLarge, VolumeAttached, VolumeExists, VolumeNameTaken } from './errors.ts'

const READ = { scope: 'volume:read' }
const WRITE = { scope: 'volume:write' }
const TAGS = ['volumes']
const ARCHIVE_TYPES = ['application/gzip', 'application/x-gzip', 'application/x-tar+gzip', 'application/octet-stream']

export function volumeRoutes (volumes: Volumes): FastifyPluginAsyncTypebox {
  return async (app) => {
    await app.register(objectRoutes(volumes))
    await app.register(archiveRoutes(volumes))
  }
}

/** Routes that create, show and remove volumes. */
function objectRoutes (volumes: Volumes): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/volumes', {
      config: { ...WRITE, idempotent: true, errors: [VolumeExists, VolumeNameTaken], passesErrors: true },
      schema: { tags: TAGS, body: CreateVolume, response: { 201: VolumeView } }
    }, async (request, reply) => reply.code(201).send(volumeView(await volumes.createEmpty(wantedOf(request.body)))))

    app.get('/volumes', {
      config: READ,
      schema: { tags: TAGS, querystring: ListVolumesQuery, response: { 200: VolumeList } }
    }, async (request, reply) => {
      return answerPage(await volumes.list(request.query), ({ id }) => id, request, reply).map(volumeView)
    })

    app.get('/volumes/:id', {
      config: READ,
      schema: { tags: TAGS, params: VolumeRef, response: { 200: VolumeView } }
    }, async (request) => volumeView(await volumes.get(request.params.id)))

    app.delete('/volumes/:id', {
      config: { scope: 'volume:delete', errors: [VolumeAttached] },
      schema: { tags: TAGS, params: VolumeRef, response: { 204: Type.Null() } }
    }, async (request, reply) => {
      await volumes.delete(request.params.id)
      return reply.code(204).send(null)
    })
  }
}

/** The archive stays a stream, since it may be as large as the disk. */
function archiveRoutes (volumes: Volumes): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser(ARCHIVE_TYPES, (_request, _payload, done) => { done(null) })

    app.post('/volumes/from-archive', {
      config: { ...WRITE, idempotent: true, accepts: ARCHIVE_TYPES, errors: [ArchiveInvalid, ArchiveTooLarge, VolumeExists, VolumeNameTaken], passesErrors: true },
      schema: {
        tags: TAGS,
        operationId: 'createVolumeFromArchive',
        description: 'The body is a tar archive, compressed with gzip; its content becomes the root folder of the volume',
        querystring: FromArchiveQuery,
        response: { 201: VolumeView }
      }
    }, async (request, reply) => {
      try {
        return reply.code(201).send(volumeView(await volumes.createFromArchive(wantedOf(request.query), request.raw, request.principal)))
      } finally {
        // The rest of a refused archive is read and dropped, so that its sender can read the answer.
        request.raw.resume()
      }
    })
  }
}

function wantedOf ({ size_gb: sizeGb, ...others }: CreateVolume): WantedVolume {
  return { ...others, sizeGb }
}
