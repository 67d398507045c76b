// What a board of this project may be made of: Grafana's own types, and for the kinds of panels used here the options
// that the panel types leave open. Prometheus' part of a query and of an annotation is spelled out, because
// @grafana/schema leaves it to the data source (PromQuery and processEvents of @grafana/prometheus).
import type {
  AnnotationQuery, Dashboard, DashboardLink, DataSourceRef, DataTransformerConfig, FieldColor, GridPos, Panel,
  ThresholdsConfig, ValueMapping, VariableModel,
} from 'raw/dashboard/x/types.gen';
import type { Options as TimeSeriesOptions, FieldConfig as TimeSeriesField } from 'raw/composable/timeseries/panelcfg/x/types.gen';
import type { Options as StatOptions } from 'raw/composable/stat/panelcfg/x/types.gen';
import type { Options as TableOptions, FieldConfig as TableField } from 'raw/composable/table/panelcfg/x/types.gen';
import type { Options as HeatmapOptions, FieldConfig as HeatmapField } from 'raw/composable/heatmap/panelcfg/x/types.gen';
import type { Options as TimelineOptions, FieldConfig as TimelineField } from 'raw/composable/statetimeline/panelcfg/x/types.gen';
import type { Options as BarGaugeOptions } from 'raw/composable/bargauge/panelcfg/x/types.gen';

interface Query {
  refId: string;
  datasource: DataSourceRef;
  expr: string;
  editorMode: 'code';
  legendFormat?: string;
  interval?: string;
  format?: 'time_series' | 'table' | 'heatmap';
  instant?: boolean;
  range?: boolean;
}

interface DataLink {
  title: string;
  url: string;
  targetBlank?: boolean;
}

interface Field<Custom> {
  defaults: {
    color?: FieldColor; custom?: Custom; decimals?: number; displayName?: string; links?: DataLink[];
    mappings?: ValueMapping[]; max?: number; min?: number; noValue?: string; thresholds?: ThresholdsConfig; unit?: string;
  };
  overrides: Array<{ matcher: { id: 'byName' | 'byRegexp' | 'byFrameRefID'; options: string };
                     properties: Array<{ id: string; value?: unknown }> }>;
}

interface PanelOf<Kind extends string, Options, Custom>
  extends Pick<Panel, 'maxDataPoints' | 'interval'> {
  type: Kind; id: number; title: string; description: string; gridPos: GridPos; datasource: DataSourceRef;
  targets: Query[]; options: Options; fieldConfig: Field<Custom>; transformations?: DataTransformerConfig[];
}

type AnyPanel =
  | PanelOf<'timeseries', TimeSeriesOptions, TimeSeriesField>
  | PanelOf<'stat', StatOptions, Record<string, never>>
  | PanelOf<'table', TableOptions, TableField>
  | PanelOf<'heatmap', HeatmapOptions, HeatmapField>
  | PanelOf<'state-timeline', TimelineOptions, TimelineField>
  | PanelOf<'bargauge', BarGaugeOptions, Record<string, never>>
  | { type: 'row'; id: number; title: string; collapsed: boolean; gridPos: GridPos; panels: AnyPanel[] };

interface PrometheusAnnotation extends Omit<AnnotationQuery, 'target'> {
  target?: { expr: string; refId: string; interval?: string; limit?: number; matchAny?: boolean; tags?: string[]; type?: string };
  titleFormat?: string; textFormat?: string; tagKeys?: string; useValueForTime?: boolean;
}

export interface Board
  extends Omit<Dashboard, 'panels' | 'annotations' | 'templating' | 'links' | 'snapshot'> {
  uid: string; title: string; description: string; tags: string[];
  panels: AnyPanel[];
  annotations: { list: PrometheusAnnotation[] };
  templating: { list: VariableModel[] };
  links: DashboardLink[];
}
