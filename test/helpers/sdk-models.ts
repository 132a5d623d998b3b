// What the official SDK's declarations say of its methods, and whether an answer is what they say. The types are read from its package by the compiler, as an editor does.
import ts from 'typescript'
import { fileURLToPath } from 'node:url'

const ENTRY = fileURLToPath(import.meta.resolve('@onkernel/hypeman')).replace(/\.m?js$/, '.d.ts')

export interface SdkModels {
  /** every method, as `instances.volumes.attach` */
  readonly methods: readonly string[]
  /**
   * What of an answer contradicts the type that the method has; none when it fits. Of a stream it is one item.
   * @throws Error when there is no such method
   */
  problems (method: string, answer: unknown): readonly string[]
}

export function readSdkModels (): SdkModels {
  const program = ts.createProgram([ENTRY], { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext, strict: true, skipLibCheck: true, noEmit: true, types: ['node'] })
  const checker = program.getTypeChecker()
  const source = program.getSourceFile(ENTRY)
  const entry = source === undefined ? undefined : checker.getSymbolAtLocation(source)
  const exported = entry === undefined ? undefined : checker.getExportsOfModule(entry).find(({ name }) => name === 'Hypeman')
  if (exported === undefined) throw new Error(`${ENTRY} exports no Hypeman`)
  const client = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
  const answers = new Map<string, ts.Type>()
  collect(checker, checker.getDeclaredTypeOfSymbol(client), '', answers)
  return {
    methods: [...answers.keys()].sort(),
    problems (method, answer) {
      const type = answers.get(method)
      if (type === undefined) throw new Error(`the SDK has no method ${method}`)
      return contradictions(checker, type, answer, method)
    }
  }
}

/** Methods of a resource and of those below it: what gives an APIPromise, by the name that a caller writes. */
function collect (checker: ts.TypeChecker, type: ts.Type, path: string, answers: Map<string, ts.Type>): void {
  for (const property of type.getProperties()) {
    if (property.name.startsWith('_')) continue
    const own = checker.getTypeOfSymbol(property)
    const name = path === '' ? property.name : `${path}.${property.name}`
    if (own.isClass() && own.getBaseTypes()?.some(({ symbol }) => symbol.name === 'APIResource') === true) collect(checker, own, name, answers)
    // The client's own methods are not calls of this API, but what one would make such calls with.
    if (path === '') continue
    const answer = own.getCallSignatures()[0]?.getReturnType()
    if (answer?.symbol.name === 'APIPromise') answers.set(name, insideOf(checker, answer))
  }
}

/** T of APIPromise<T>, and of APIPromise<Stream<T>>. */
function insideOf (checker: ts.TypeChecker, answer: ts.Type): ts.Type {
  const [inner] = checker.getTypeArguments(answer as ts.TypeReference)
  if (inner === undefined) throw new Error(`${checker.typeToString(answer)} says nothing of its answer`)
  return inner.symbol?.name === 'Stream' ? insideOf(checker, inner) : inner
}

function contradictions (checker: ts.TypeChecker, type: ts.Type, value: unknown, place: string): readonly string[] {
  const expected = (): readonly string[] => [`${place} is ${JSON.stringify(value) ?? 'undefined'}, and not ${checker.typeToString(type)}`]
  if (type.isUnion()) return type.types.some((one) => contradictions(checker, one, value, place).length === 0) ? [] : expected()
  if (type.isStringLiteral() || type.isNumberLiteral()) return value === type.value ? [] : expected()
  if (type.flags & ts.TypeFlags.BooleanLiteral) return String(value) === checker.typeToString(type) ? [] : expected()
  if (type.flags & ts.TypeFlags.String) return typeof value === 'string' ? [] : expected()
  if (type.flags & ts.TypeFlags.Number) return typeof value === 'number' ? [] : expected()
  if (type.flags & ts.TypeFlags.Boolean) return typeof value === 'boolean' ? [] : expected()
  if (type.flags & ts.TypeFlags.Null) return value === null ? [] : expected()
  // The SDK gives null for an answer without a body.
  if (type.flags & ts.TypeFlags.VoidLike) return value == null ? [] : expected()
  if (type.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown)) return []
  if (checker.isArrayType(type)) {
    const [item] = checker.getTypeArguments(type as ts.TypeReference)
    return Array.isArray(value) && item !== undefined ? value.flatMap((each, index) => contradictions(checker, item, each, `${place}[${index}]`)) : expected()
  }
  if (!(type.flags & ts.TypeFlags.Object)) throw new Error(`${place}: ${checker.typeToString(type)} is a type that is not known here`)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return expected()
  return fieldsOf(checker, type, new Map(Object.entries(value)), place)
}

function fieldsOf (checker: ts.TypeChecker, type: ts.Type, fields: ReadonlyMap<string, unknown>, place: string): readonly string[] {
  const index = type.getStringIndexType()
  const others = index === undefined ? [] : [...fields].flatMap(([name, value]) => contradictions(checker, index, value, `${place}.${name}`))
  return [...others, ...type.getProperties().filter(isOfAnswers).flatMap((property) => {
    const value = fields.get(property.name)
    const own = `${place}.${property.name}`
    if (value === undefined) return property.flags & ts.SymbolFlags.Optional ? [] : [`${own} is missing`]
    return contradictions(checker, checker.getTypeOfSymbol(property), value, own)
  })]
}

/** `Capabilities` and `Resources` are each an answer and the class of the calls for it, under one name. */
function isOfAnswers ({ declarations = [] }: ts.Symbol): boolean {
  return !declarations.some(({ parent }) => ts.isClassDeclaration(parent))
}
