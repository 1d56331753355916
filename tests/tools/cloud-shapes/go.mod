module cloud-shapes

go 1.26.6

require github.com/pulumi/pulumi-cloud-sdk/go v1.20261104.0

require (
	github.com/blang/semver v3.5.1+incompatible // indirect
	github.com/go-jose/go-jose/v4 v4.1.6 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
