"""How a report looks: light or dark as the reader has it, on a phone or a wide screen."""

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--card:#f6f7f9;--ink:#16191d;--soft:#5a6470;
--line:#dde1e6;--blue:#1769c4;--fill:#1769c433;--red:#c4302b;--amber:#9a6200;--teal:#0b7285;
--green:#1a7f37;--none:#e3e6ea}
@media(prefers-color-scheme:dark){:root{--paper:#101316;--card:#191d22;--ink:#e8ebee;
--soft:#9aa5b1;--line:#2c333b;--blue:#6cb0ff;--fill:#6cb0ff40;--red:#ff7b72;--amber:#e3b341;
--teal:#56d4dd;--green:#57c26d;--none:#2a3037}}
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
.findings li:first-child{border-top:0}
.findings span:last-child{overflow-wrap:anywhere}
.error,.warning,.note,.good{font-weight:600}
.error{color:var(--red)}.warning{color:var(--amber)}.note{color:var(--teal)}.good{color:var(--green)}
svg{display:block;width:100%}
.spans{height:14px;background:var(--none);border-radius:3px}
.there{fill:var(--blue)}.gap{fill:var(--red)}
.plot{height:64px;background:var(--paper);border:1px solid var(--line);border-radius:4px}
.channel .plot{height:44px}
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
.channel{display:grid;grid-template-columns:minmax(8rem,14rem) 1fr minmax(13rem,16rem);gap:4px 14px;
align-items:center;padding:5px 0;border-top:1px solid var(--line)}
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
.findings li{grid-template-columns:1fr}
.row{grid-template-columns:1fr auto}.row>:nth-child(2){grid-column:1/-1;grid-row:2}
td,th{padding-left:8px}table{font-size:.78rem}.row.last>span{display:none}
.channel{grid-template-columns:1fr}.numbers{display:flex;flex-wrap:wrap;gap:0 14px}}
@media print{.card{break-inside:avoid}}
"""
