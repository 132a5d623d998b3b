// The base images of a Dockerfile.
import t from 'tap'
import { baseImages } from '../../../../plugins/builds/builder-vm/base-images.ts'

function read (dockerfile: string, { args = {}, target }: { args?: Record<string, string>, target?: string } = {}): { all: readonly string[], main: string | undefined } {
  return baseImages(dockerfile, args, target, 'linux/amd64')
}

t.test('the base of the only stage is the main one', async (t) => {
  t.same(read('FROM alpine:3.20\nRUN true\n'), { all: ['alpine:3.20'], main: 'alpine:3.20' })
})

t.test('the last stage counts, through the stages that it is made of', async (t) => {
  t.same(read('FROM golang AS build\nFROM alpine AS Base\nRUN x\nFROM base\nCOPY --from=build /a /a\n'), { all: ['golang', 'alpine'], main: 'alpine' })
})

t.test('a stage may be named by its number', async (t) => {
  t.same(read('FROM one\nFROM 0\n'), { all: ['one'], main: 'one' })
})

t.test('when the last stage is made of nothing, the first base is the main one', async (t) => {
  t.same(read('FROM gcc:12 AS build\nFROM debian\nFROM scratch\n'), { all: ['gcc:12', 'debian'], main: 'gcc:12' })
})

t.test('a build of nothing has no base', async (t) => {
  t.same(read('FROM scratch\nCOPY a /a\n'), { all: [], main: undefined })
})

t.test('the stage that is asked for counts', async (t) => {
  t.same(read('FROM one AS a\nFROM two AS b\n', { target: 'A' }).main, 'one')
})

t.test('arguments before the first stage are put in, those of the build first', async (t) => {
  const dockerfile = 'ARG REGISTRY=localhost:8080 NAME="base"\nARG TAG=${VERSION:-1}\nARG FULL=$NAME:${TAG}\nFROM ${REGISTRY}/$FULL${SUFFIX:+-slim}${NONE:-}\n'
  t.equal(read(dockerfile).main, 'localhost:8080/base:1')
  t.equal(read(dockerfile, { args: { TAG: '2', REGISTRY: 'registry.example' } }).main, 'registry.example/base:2')
})

t.test('an argument of the build that the Dockerfile does not declare is not put in', async (t) => {
  t.equal(read('FROM base:${TAG:-1}\n', { args: { TAG: '9' } }).main, 'base:1')
})

t.test('the platform may stand before the image, and is known as an argument', async (t) => {
  t.same(read('FROM --platform=$BUILDPLATFORM go AS x\nFROM base-$TARGETARCH\n'), { all: ['go', 'base-amd64'], main: 'base-amd64' })
})

t.test('comments, continued lines, another escape character and other cases are understood', async (t) => {
  t.same(read('# escape=`\r\n# a comment\r\narg X=`\r\n  # within\r\n  1\r\nfrom a`\r\n  as one\r\n').all, ['a'])
  t.same(read('FROM \\\n# here\n  alpine \\\n  AS one\nRUN echo \\\n  FROM none\n').all, ['alpine'])
})

t.test('a later stage does not take the name of an image before it', async (t) => {
  t.same(read('FROM debian\nFROM alpine AS debian\n'), { all: ['debian', 'alpine'], main: 'alpine' })
})
