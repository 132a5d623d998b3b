// The base images of a Dockerfile.
import t from 'tap'
import { BerthError } from '../../../../core/errors/define.ts'
import { baseImages } from '../../../../plugins/builds/builder-vm/base-images.ts'
import { limitMs, msOf } from '../../../helpers/processor-time.ts'

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

t.test('quotes hold a value together, and one that does not end is a character', async (t) => {
  t.equal(read('ARG A="x y" B=\'z\' C=\'q\nFROM a-$B$C\n').main, "a-z'q")
  t.equal(read('ARG A="x y" B=1\nFROM $A:$B\n').main, 'x y:1')
})

t.test('what an object has anyway is no argument', async (t) => {
  t.equal(read('FROM a${constructor}${__proto__:-b}\n').main, 'ab')
})

t.test('a reference that does not end stays as it is', async (t) => {
  t.equal(read('FROM a${B\n').main, 'a${B')
  t.equal(read('FROM a${B:-c\n').main, 'a${B:-c')
})

t.test('arguments that grow without end are refused', async (t) => {
  const lines = Array.from({ length: 40 }, (_, at) => `ARG A${at + 1}=$A${at}$A${at}`)
  t.throws(() => read(`ARG A0=xxxxxxxxxx\n${lines.join('\n')}\nFROM $A40\n`), { message: 'dockerfile: arguments and names of images grow to more than 1048576 characters' })
})

t.test('a Dockerfile has at most 1000 stages, and names of bounded length', async (t) => {
  t.equal(read('FROM a\n'.repeat(1000)).main, 'a')
  t.throws(() => read('FROM a\n'.repeat(1001)), { message: 'dockerfile: has more than 1000 stages' })
  t.throws(() => read(`FROM a\nFROM ${'b'.repeat(513)}\n`), { message: 'dockerfile: the image of stage 1 has a name of more than 512 characters' })
})

t.test('no Dockerfile of the largest size keeps the server from others', async (t) => {
  const size = 2 ** 20
  const fill = (text: string): string => text.repeat(Math.ceil(size / text.length)).slice(0, size)
  const hostile = {
    'comments like directives': `#${'='.repeat(20)}\n`.repeat(6) + fill('#=='),
    'one comment of equal signs': fill('#='), stages: fill('FROM a\n'), 'stages that are numbers': fill('FROM 0\n'), 'named stages': fill('FROM a AS b\n'),
    'continued lines': `FROM a${fill(' \\\n')}`, blanks: `FROM ${fill(' ')}`, 'carriage returns': fill('\r'), quotes: `ARG ${fill('"\'')}`, 'one word': `ARG ${fill('a')}`,
    'open references': `FROM ${fill('${a-')}`, 'open names': `FROM ${fill('${a')}`, dollars: `FROM ${fill('$')}`, references: `ARG A=b\nFROM ${fill('$A')}`, arguments: fill('ARG a=b\n'),
    'white space before arguments': fill('ARG \t '), escapes: fill('\\\n'), 'a chain of stages': Array.from({ length: 1000 }, (_, at) => `FROM s${at} AS s${at + 1}\n`).join('')
  }
  const limit = limitMs()
  for (const [name, dockerfile] of Object.entries(hostile)) {
    const took = msOf(() => { try { read(dockerfile) } catch (error) { if (!(error instanceof BerthError)) throw error } })
    t.ok(took < limit, `${name}: ${took} ms of ${limit}`)
  }
})
