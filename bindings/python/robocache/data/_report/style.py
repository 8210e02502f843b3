"""The style of the page, for a bright and a dark background, and for narrow screens."""

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--card:#f6f7f9;--ink:#16191d;--soft:#5a6470;
--line:#dde1e6;--blue:#1769c4;--fill:#1769c433;--red:#c4302b;--amber:#9a6200;--teal:#0b7285;
--green:#1a7f37;--none:#e3e6ea;--orange:#b8510a;--orangefill:#d9690f33}
@media(prefers-color-scheme:dark){:root{--paper:#101316;--card:#191d22;--ink:#e8ebee;
--soft:#9aa5b1;--line:#2c333b;--blue:#6cb0ff;--fill:#6cb0ff40;--red:#ff7b72;--amber:#e3b341;
--teal:#56d4dd;--green:#57c26d;--none:#2a3037;--orange:#ffa657;--orangefill:#ffa65740}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
main{max-width:1120px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:36px 0 10px}
h3{font-size:1rem;margin:0;overflow-wrap:anywhere}
h4{font-size:.8rem;font-weight:600;color:var(--soft);margin:16px 0 4px}
p{margin:0 0 8px}
.soft{color:var(--soft)}
.path{font-size:.85rem;overflow-wrap:anywhere}
.chips{display:flex;flex-wrap:wrap;gap:6px 18px;margin:6px 0 0;padding:0;list-style:none}
.chips li{white-space:nowrap}
.chips b{font-weight:600;font-variant-numeric:tabular-nums}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;
margin:0 0 14px}
.findings{list-style:none;margin:0;padding:0}
.findings li{display:grid;grid-template-columns:5.2rem 1fr;gap:4px 10px;padding:6px 0;
border-top:1px solid var(--line)}
.findings.remedies li{grid-template-columns:9.5rem 1fr}
.findings li:first-child{border-top:0}
.findings span:last-child{overflow-wrap:anywhere}
.error,.warning,.note,.good{font-weight:600}
.error{color:var(--red)}.warning{color:var(--amber)}.note{color:var(--teal)}.good{color:var(--green)}
svg{display:block;width:100%}
svg.none{width:0;height:0;position:absolute}
.spans{height:14px;background:var(--none);border-radius:3px}
.there{fill:var(--blue)}.gap{fill:var(--red)}
.plot{height:64px;background:var(--paper);border:1px solid var(--line);border-radius:4px}
.channel .plot{height:52px}
.box{display:flex;min-width:0}
.box svg{flex:1;min-width:0;width:0;touch-action:pan-y;cursor:crosshair}
.y{display:flex;flex-direction:column;justify-content:space-between;width:3.9rem;flex:none;
padding-right:6px;text-align:right;font-size:.72rem;line-height:1.1;color:var(--soft);
font-variant-numeric:tabular-nums;white-space:nowrap}
.hole{fill:var(--none)}
.cursor{stroke:var(--ink);stroke-width:1;fill:none;vector-effect:non-scaling-stroke}
.chosen{fill:var(--fill)}
.after{fill:none;stroke:var(--orange);stroke-width:1.2;stroke-linejoin:round;
vector-effect:non-scaling-stroke}
.band.action{fill:var(--orangefill);stroke:var(--orange)}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;background:var(--blue);
vertical-align:-.05em;margin-right:.35em}
.key.orange{background:var(--orange)}.key.none{background:var(--none)}.key.red{background:var(--red)}
.paths{display:flex;flex-wrap:wrap;gap:14px}
.paths figure{margin:0;width:260px;max-width:100%}
.paths svg{width:100%;aspect-ratio:1;background:var(--paper);border:1px solid var(--line);
border-radius:4px}
.paths svg.deep{touch-action:none;cursor:grab}
figcaption{font-size:.75rem;color:var(--soft);margin-top:4px;overflow-wrap:anywhere}
.trace{fill:none;stroke:var(--blue);stroke-width:1;stroke-linejoin:round;stroke-linecap:round}
.begin{fill:var(--green)}.end{fill:var(--red)}
.sliders{display:flex;gap:10px;font-size:.75rem;color:var(--soft);margin-top:4px}
.sliders label{display:flex;gap:4px;align-items:center;min-width:0;flex:1}
.sliders input{min-width:0;width:100%}
.strip{display:flex;gap:4px;overflow-x:auto;padding-bottom:4px}
.strip figure{margin:0;flex:none}
.strip img{display:block;height:90px;border-radius:4px}
code{font:.82rem ui-monospace,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere;
background:var(--paper);border:1px solid var(--line);border-radius:4px;padding:1px 5px;
display:inline-block;margin-top:3px}
select,button{font:inherit;color:inherit;background:var(--paper);border:1px solid var(--line);
border-radius:6px;padding:3px 9px;max-width:100%}
button{cursor:pointer;min-width:2.2rem}
:focus-visible{outline:2px solid var(--blue);outline-offset:2px}
.bar{position:sticky;bottom:10px;display:flex;flex-wrap:wrap;gap:6px;align-items:center;
background:var(--card);border:1px solid var(--line);border-radius:10px;padding:6px 10px;
margin-top:24px;font-size:.85rem;box-shadow:0 2px 10px #0003}
.bar output{margin-left:6px;font-variant-numeric:tabular-nums;overflow-wrap:anywhere;min-width:0;
flex:1 1 12rem}
.span{margin:0 0 0 3.9rem}
.channel>.span{grid-column:2}
.bars{fill:var(--blue)}
.mark{stroke:var(--red);stroke-width:2;stroke-dasharray:6 4;fill:none;
vector-effect:non-scaling-stroke}
.band{fill:var(--fill);stroke:var(--blue);stroke-width:1;stroke-linejoin:round;
vector-effect:non-scaling-stroke}
.axis{display:flex;justify-content:space-between;gap:12px;font-size:.75rem;color:var(--soft);
font-variant-numeric:tabular-nums;margin-top:2px}
.row{display:grid;grid-template-columns:minmax(9rem,16rem) 1fr 7rem;gap:10px;align-items:center;
padding:5px 0}
.row a{overflow-wrap:anywhere}
.row>:last-child{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.channel{display:grid;gap:4px 14px;
grid-template-columns:minmax(6rem,11rem) minmax(0,1fr) minmax(11rem,14rem);
align-items:center;padding:5px 0;border-top:1px solid var(--line)}
.channel.two{grid-template-columns:minmax(6rem,11rem) minmax(0,1fr)}
.channel:first-of-type{border-top:0}
.channel>:first-child{overflow-wrap:anywhere}
.numbers{font-size:.8rem;color:var(--soft);font-variant-numeric:tabular-nums;line-height:1.4}
.numbers b{color:var(--ink);font-weight:500}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums;width:100%}
th{font-weight:600;color:var(--soft);text-align:right;padding:4px 0 4px 16px;white-space:nowrap}
td{text-align:right;padding:4px 0 4px 16px;border-top:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left;padding-left:0}
td.wrong{color:var(--red);font-weight:600}
summary{cursor:pointer;color:var(--blue);margin-top:10px}
a{color:var(--blue);text-decoration:none}
a:hover{text-decoration:underline}
footer{margin-top:40px;color:var(--soft);font-size:.85rem}
@media(max-width:640px){main{padding:18px 14px 40px}h1{font-size:1.3rem}
.findings li,.findings.remedies li{grid-template-columns:1fr}
.row{grid-template-columns:1fr auto}.row>:nth-child(2){grid-column:1/-1;grid-row:2}
td,th{padding-left:8px}table{font-size:.78rem}.row.last>span{display:none}
.channel,.channel.two{grid-template-columns:minmax(0,1fr)}.channel>.span{grid-column:1}
.numbers{display:flex;flex-wrap:wrap;gap:0 14px}}
@media print{.bar{display:none}.card{break-inside:avoid}}
"""
