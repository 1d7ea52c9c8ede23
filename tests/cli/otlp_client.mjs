// OpenTelemetry's own SDK for JavaScript ends the spans of an OTLP file again and exports them: otlp_client.mjs PORT FILE proto|http
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
const { ROOT_CONTEXT } = require("@opentelemetry/api");
const { BatchSpanProcessor, NodeTracerProvider } = require("@opentelemetry/sdk-trace-node");
const { resourceFromAttributes } = require("@opentelemetry/resources");

const [port, file, protocol] = process.argv.slice(2);
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${protocol}`);
const valueOf = ({ key, value }) => [key, "intValue" in value ? Number(value.intValue) : value.stringValue];
const timeOf = (nanoseconds) => [Number(BigInt(nanoseconds) / 1000000000n), Number(BigInt(nanoseconds) % 1000000000n)];

let sent = 0;
for (const { resource, scopeSpans } of JSON.parse(readFileSync(file, "utf8")).resourceSpans) {
    const provider = new NodeTracerProvider({
        resource: resourceFromAttributes(Object.fromEntries(resource.attributes.map(valueOf))),
        spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: `http://127.0.0.1:${port}/v1/traces` }), { maxExportBatchSize: 16 })],
    });
    for (const { scope, spans } of scopeSpans)
        for (const span of spans) {
            const attributes = Object.fromEntries(span.attributes.map(valueOf));
            provider.getTracer(scope.name).startSpan(span.name, { startTime: timeOf(span.startTimeUnixNano), attributes }, ROOT_CONTEXT)
                .end(timeOf(span.endTimeUnixNano));
            ++sent;
        }
    await provider.forceFlush();
    await provider.shutdown();
}
console.log(`sent ${sent} spans`);
