// The content of a Compose file, read and checked, with the names that the server uses.

export type Condition = 'service_started' | 'service_healthy' | 'service_completed_successfully'

export interface Dependency {
  readonly service: string
  readonly instance: string
  readonly condition: Condition
  /** false: the service also starts when the other one is not in the file, or fails */
  readonly required: boolean
}

export interface BuildModel {
  readonly context: string
  /** a path below the context */
  readonly dockerfile?: string
  readonly dockerfileText?: string
  readonly args: Readonly<Record<string, string>>
  readonly target?: string
  readonly noCache: boolean
}

export interface ServiceModel {
  readonly service: string
  readonly instance: string
  /** absent for one that starts from a snapshot */
  readonly image?: string
  readonly build?: BuildModel
  /** id or name */
  readonly snapshot?: string
  readonly dependsOn: readonly Dependency[]
  /** the body of the API's request, without name, image, tags and values of credentials */
  readonly body: Readonly<Record<string, unknown>>
  readonly tags: Readonly<Record<string, string>>
  /** the variables from which credentials take their values */
  readonly secrets: Readonly<Record<string, string>>
  readonly hasHealthCheck: boolean
}

export interface VolumeModel {
  readonly key: string
  readonly name: string
  /** created by somebody else, and never deleted here */
  readonly external: boolean
  readonly sizeGb: number
  readonly tags: Readonly<Record<string, string>>
}

export interface Project {
  readonly name: string
  readonly file: string
  /** a service stands after those that it depends on */
  readonly services: readonly ServiceModel[]
  readonly volumes: readonly VolumeModel[]
}
