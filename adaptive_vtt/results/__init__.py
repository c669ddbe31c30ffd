"""How an audit ended: results, run folders, gates, reports and exports, from its journal."""
