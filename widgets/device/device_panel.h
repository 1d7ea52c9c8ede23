// DevicePanel: what ran on the devices during the ops of one step, in three pages: kernels and copies by op, links
// between ranks, and the roofline of each kind of op. GUI thread only.
#pragma once

#include <memory>

#include <QWidget>

#include "widgets/device/device_figures.h"
#include "widgets/theme.h"

class QLabel;
class QTabWidget;

namespace stagewright {

class FigureTable;
class RooflinePlot;

class DevicePanel : public QWidget {
    Q_OBJECT
public:
    explicit DevicePanel(QWidget* parent = nullptr);
    void setFigures(std::shared_ptr<const DeviceFigures> figures); // null: no run is shown
    void setWorking();                                             // they are being computed
    void setTheme(const Theme& theme);
    FigureTable* kernels() { return m_kernels; }
    FigureTable* links() { return m_links; }
    FigureTable* rooflineTable() { return m_rows; }
    RooflinePlot* plot() { return m_plot; }
    QTabWidget* pages() { return m_pages; }
    QString lineText() const; // above the page shown

signals:
    void spanChosen(stagewright::SpanId span); // of a kernel

private:
    QWidget* page(QLabel*& line, QWidget* body);

    QTabWidget* m_pages;
    FigureTable *m_kernels, *m_links, *m_rows;
    RooflinePlot* m_plot;
    QLabel *m_kernelLine = nullptr, *m_linkLine = nullptr, *m_roofLine = nullptr;
    std::shared_ptr<const DeviceFigures> m_figures;
};

} // namespace stagewright
